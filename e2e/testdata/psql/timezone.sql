-- on: both
-- TimeZone: names in any letter case, POSIX notation, hours, intervals.
set timezone = 'us/pacific';
show timezone;
set timezone = 'pst8pdt';
show timezone;
select timestamptz '2024-07-01 00:00Z';
set timezone = '+05:30';
show timezone;
select timestamptz '2024-01-01 00:00Z';
set timezone = 'nowhere';
set timezone = 'PDT';
set timezone = 5.5;
show timezone;
select timestamptz '2024-01-01 00:00Z';
set timezone = '<X>-3';
show timezone;
select timestamptz '2024-01-01 00:00Z';
set timezone to 'utc';
show timezone;
set timezone = 'zulu';
show timezone;
set time zone interval '-3:30' hour to minute;
show timezone;
select timestamptz '2024-01-01 00:00Z';
set time zone -3;
show time zone;
